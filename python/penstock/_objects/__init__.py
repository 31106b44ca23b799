"""Objects of Python beside tensors: what files hold of them, and how ours are pickled."""
