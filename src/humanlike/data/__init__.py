"""Images, strokes, drawings and data sets: everything becomes `humanlike.types.Sketches`."""
