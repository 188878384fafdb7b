"""What passes are made of: see pass_base."""
