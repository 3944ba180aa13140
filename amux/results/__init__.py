"""What operations answer with, as the model says what a session is. Each is loaded by the operation that needs it."""
