"""Operations with rules given by the user, and code that is not traced."""
