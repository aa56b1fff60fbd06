"""An architecture in, other tools' files out; trained weights in, a Hugging Face folder out."""
