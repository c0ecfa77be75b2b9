"""Final values of many runs by two settings: `panel` has the numbers, `picture` draws them, `notes` tells of them."""
