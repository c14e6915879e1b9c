"""Operations whose rules the user gives, and code that is no program."""
