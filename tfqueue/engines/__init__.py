"""The engines: ways to run one and the same pipeline. An engine knows the graph, and no other engine."""
