"""Programs outside of the process that made them: exported as StableHLO and ONNX, as source, as text, and by pickle."""
