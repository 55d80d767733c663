"""What goes wrong when clients come late, rarely or never: measures, diagnoses and a picture."""
