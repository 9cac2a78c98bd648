"""Documents and questions to try cragside with; they come with the package."""
