"""Where thinking meets doing: live sessions, and the one place where effects are performed."""
