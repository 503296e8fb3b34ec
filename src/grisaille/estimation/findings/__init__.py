"""What an estimate holds beside numbers that every method finds: a frozen object for each kind of finding."""
