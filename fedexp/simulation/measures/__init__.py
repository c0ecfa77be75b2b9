"""What evaluated rounds tell beside the test data, one idea a file."""
