"""Figures of the benches: growth with the size of a corpus, one panel for each quantity."""

from collections.abc import Mapping, Sequence


def growth_panels(rows: Sequence[Mapping], panels: Mapping[str, Sequence[str]]):
    "Small panels side by side on logarithmic axes, columns of a panel labelled at their last point; dotted: in proportion to the size."
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sizes = [row["documents"] for row in rows]
    drawing, axes = plt.subplots(1, len(panels), figsize=(2.7 * len(panels), 2.9), layout="constrained")
    for axis, (title, columns) in zip(axes, panels.items()):
        for column, marker in zip(columns, "osD^"):
            values = [max(row[column], 1e-3) for row in rows]
            axis.loglog(sizes, values, marker=marker, markersize=4)
            if len(columns) > 1:
                axis.annotate(column.split("_")[0], (sizes[-1], values[-1]), textcoords="offset points", xytext=(-4, 6 if marker == "s" else -11), ha="right", fontsize=8)
        last = max(row[columns[0]] for row in rows)
        axis.loglog([sizes[0], sizes[-1]], [last * sizes[0] / sizes[-1], last], linestyle=":", color="0.5", zorder=0)
        axis.set_title(title, fontsize=9, loc="left")
        axis.set_xlabel("documents", fontsize=8)
        axis.tick_params(labelsize=8)
    return drawing
