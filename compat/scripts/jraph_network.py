# libraries: jraph dm-haiku optax
# tolerance: 1e-3 (training amplifies the rounding)
"""jraph: batched and padded graphs, a GraphNetwork trained to count triangles, GCN, attention."""
import haiku as hk
import jax
import jax.numpy as jnp
import jraph
import numpy as np
import optax


def random_graph(rng):
    n = int(rng.integers(4, 8))
    adjacency = np.triu(rng.uniform(size=(n, n)) < 0.5, 1)
    adjacency = adjacency | adjacency.T
    senders, receivers = np.nonzero(adjacency)
    triangles = np.trace(np.linalg.matrix_power(adjacency.astype(np.int64), 3)) / 6
    return jraph.GraphsTuple(
        nodes=np.ones((n, 1), np.float32), edges=np.ones((len(senders), 1), np.float32),
        senders=senders, receivers=receivers, n_node=np.array([n]),
        n_edge=np.array([len(senders)]), globals=np.array([[triangles]], np.float32))


rng = np.random.default_rng(0)
graphs = jraph.batch_np([random_graph(rng) for _ in range(12)])
nodes, edges = int(graphs.n_node.sum()), int(graphs.n_edge.sum())
padded = jraph.pad_with_graphs(graphs, nodes + 7, edges + 5, 14)
targets = jnp.asarray(padded.globals)
mask = jraph.get_graph_padding_mask(padded)
print("graphs", padded.n_node.tolist(), int(mask.sum()), int(jraph.get_edge_padding_mask(
    padded).sum()), int(jraph.get_node_padding_mask(padded).sum()))


def network(graph):
    graph = graph._replace(globals=jnp.zeros((graph.n_node.shape[0], 1)))
    embed = jraph.GraphMapFeatures(hk.Linear(16), hk.Linear(16), hk.Linear(16))
    graph = embed(graph)
    for _ in range(2):
        net = jraph.GraphNetwork(
            update_edge_fn=jraph.concatenated_args(hk.nets.MLP([16, 16])),
            update_node_fn=jraph.concatenated_args(hk.nets.MLP([16, 16])),
            update_global_fn=jraph.concatenated_args(hk.nets.MLP([16, 16])))
        graph = net(graph)
    return hk.Linear(1)(graph.globals)


model = hk.without_apply_rng(hk.transform(network))
params = model.init(jax.random.PRNGKey(0), padded)
tx = optax.adam(3e-3)
opt_state = tx.init(params)


@jax.jit
def step(params, opt_state):
    def loss_fn(params):
        error = (model.apply(params, padded) - targets)[:, 0] * mask
        return jnp.sum(error ** 2) / mask.sum()
    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


for i in range(40):
    params, opt_state, loss = step(params, opt_state)
    if i % 8 == 7:
        print("step", i + 1, "loss", float(loss))
print("predicted", np.asarray(model.apply(params, padded))[:4, 0], targets[:4, 0].tolist())

one = jraph.unbatch(padded)[0]
weights = jax.random.normal(jax.random.key(1), (1, 4))
gcn = jraph.GraphConvolution(lambda n: n @ weights, add_self_edges=True)
print("GCN", np.asarray(gcn(one._replace(edges=None)).nodes[:2]))
gat = jraph.GAT(lambda n: n @ weights, lambda s, r, e: jnp.sum(s + 2 * r, -1, keepdims=True))
print("GAT", np.asarray(jax.jit(gat)(one).nodes[:2]))
logits = jax.random.normal(jax.random.key(2), (padded.senders.shape[0],))
print("softmax", np.asarray(jraph.segment_softmax(logits, padded.receivers,
                                                   padded.nodes.shape[0])[:5]))
print("mean", np.asarray(jraph.segment_mean(logits, padded.senders, padded.nodes.shape[0])[:5]))
print("partition", np.asarray(jraph.partition_softmax(logits[:nodes], graphs.n_node)[:4]))
