"""Searches for a minimum: bounded, damped, interruptible."""
