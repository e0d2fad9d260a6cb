"""Sensors and schedules."""
