"""The simulated clock: how long rounds took, and how old uploads were."""
