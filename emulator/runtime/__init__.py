"""The runtime: what makes turns happen on the event loop. It knows no HTTP and no control routes."""
