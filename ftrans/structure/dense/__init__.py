"""Dense Jacobians and Hessians: products with unit vectors, in chunks, by halves or from few entries."""
