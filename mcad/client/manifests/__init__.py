"""AppWrappers before they are sent: read, wrapped, checked."""
