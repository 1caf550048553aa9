"""The only control loop: observe, plan, apply. Lambda, demo and simulator run this code."""
