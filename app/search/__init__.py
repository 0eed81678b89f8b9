"""What a question is nearest to: tools ranked by the words of their names, titles, descriptions and parameters."""
