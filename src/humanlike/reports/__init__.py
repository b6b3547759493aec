"""What a run leaves behind: its folder, console tables, figures, an HTML report, and the entries of a dashboard."""
