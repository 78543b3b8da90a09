"""The trial of `doctor.py`: sound models, models with planted defects, and cases in processes of their own."""
