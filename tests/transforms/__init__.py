"""The transformations and control flow, alone and in every order."""
