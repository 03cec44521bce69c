"""What may be asked and what is answered, one module per noun."""
