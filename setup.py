"""Package metadata: settings.ini is the one place where it is written; this file only passes it on."""

from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

config = ConfigParser()
config.read(Path(__file__).parent / "settings.ini", encoding="utf-8")
settings = config["DEFAULT"]


def listed(name):
    "A multi-line value of settings.ini as a list."
    return settings.get(name, "").split()


setup(
    name=settings["lib_name"],
    version=settings["version"],
    description=settings["description"],
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8") if Path(__file__).with_name("README.md").exists() else "",
    long_description_content_type="text/markdown",
    keywords=settings["keywords"],
    author=settings["author"],
    author_email=settings["author_email"],
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=f">={settings['min_python']}",
    packages=find_packages(include=["crumb_nb", "crumb_nb.*"]),
    include_package_data=True,
    package_data={"crumb_nb": ["py.typed", "assets/**", "data/**"]},
    install_requires=listed("requirements"),
    extras_require={extra: listed(f"{extra}_requirements") for extra in ("dev", "chunkers", "static", "hub", "ir_datasets", "bench")},
    entry_points={"console_scripts": listed("console_scripts")},
    classifiers=["Intended Audience :: Science/Research", "Programming Language :: Python :: 3", "Topic :: Scientific/Engineering", "Framework :: Jupyter"],
    zip_safe=False,
)
