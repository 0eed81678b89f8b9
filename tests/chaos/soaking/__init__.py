"""The long run: clients of both eras at work while something strikes every moment, and what must be true of it.

`history` is what was asked and told, `hosts` a gateway through its lives, `working` the clients (`legacy` and `modern`
for what they say), `striking` the faults, and `run` all of it together.
"""
