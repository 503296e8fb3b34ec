"""How long a fit takes and how much memory, before and after."""
