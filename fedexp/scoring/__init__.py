"""Loss and accuracy of models, of many at once."""
