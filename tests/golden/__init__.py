"""Small programs and the text of what is made of them, to be read; programs.py has the form."""
