"""Modules with the names and signatures of other packages, computed by Tercet.

| instead of | write |
|---|---|
| `import tensogram` | `import tercet.compat.tensogram as tensogram` |
| `import tet` | `import tercet.compat.tet as tet` |
"""
