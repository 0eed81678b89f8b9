"""What holds for all tests of the command line."""

import signal

# Whoever runs the tests may ignore it (`nohup`), and what is ignored is inherited: no test of it would mean anything.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
