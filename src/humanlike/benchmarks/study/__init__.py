"""A study of many models on one data set: what reproduces the paper's tables and figures."""
