"""Small architectures that neither timm nor torchvision has, under the names that published checkpoints use."""
