"""What is changed in texts that the flattener refuses although the language allows them."""
