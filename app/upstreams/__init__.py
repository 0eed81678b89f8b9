"""What is behind us: child processes started, watched and stopped, their lines and their stderr."""
