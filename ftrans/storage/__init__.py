"""Programs outside of the process that made them: exported as StableHLO and ONNX, as text, and by pickle."""
