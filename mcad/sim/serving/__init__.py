"""Requests and their answers: the API port, HTTP, and the documents that kubectl asks for."""
