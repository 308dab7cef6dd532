"""Figures of the benches: growth with the size of a corpus, one panel for each quantity."""

from collections.abc import Mapping, Sequence


def growth_panels(rows: Sequence[Mapping], panels: Mapping[str, Sequence[str]]):
    "Small panels side by side on logarithmic axes, with a legend where a panel has several lines; dotted: in proportion to the size."
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sizes = [row["documents"] for row in rows]
    drawing, axes = plt.subplots(1, len(panels), figsize=(2.7 * len(panels), 2.9), layout="constrained")
    for axis, (title, columns) in zip(axes, panels.items()):
        for column, marker in zip(columns, "osD^"):
            axis.loglog(sizes, [row[column] for row in rows], marker=marker, markersize=4, label=column.split("_")[0])
        last = max(row[columns[0]] for row in rows)
        axis.loglog([sizes[0], sizes[-1]], [last * sizes[0] / sizes[-1], last], linestyle=":", color="0.5", zorder=0)
        if len(columns) > 1:
            axis.legend(frameon=False, fontsize=8, loc="upper left")
        axis.set_title(title, fontsize=9, loc="left")
        axis.set_xlabel("documents", fontsize=8)
        axis.tick_params(labelsize=8)
    return drawing
