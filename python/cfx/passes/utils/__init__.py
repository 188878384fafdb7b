"""What passes share: see the modules."""
