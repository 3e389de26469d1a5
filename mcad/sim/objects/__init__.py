"""What objects have to look like: types, defaults, schemas, rules, and the words of refusals."""
