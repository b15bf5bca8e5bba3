"""What tools do. Know nothing of the protocol; what they are told was checked before."""
