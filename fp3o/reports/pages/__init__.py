"""Pages: HTML for runs and experiments, Markdown for a site, LaTeX for a paper."""
