"""Read and write Windows registry hives."""
