"""Updates: x.at[index]."""

from __future__ import annotations

from compat.spec import check
from compat.tables._inputs import rows

TABLE = {
    "jax.Array.at[].array": check("jnp.arange(3).at[1].array"),
    "jax.Array.at[].index": check("jnp.arange(3).at[1].index", "jnp.ones((2, 2)).at[0, :1].index"),
    "jax.Array.at[].set": rows("""
        a.at[0].set(1.)
        a.at[5].set(1.)
        a.at[-1].set(1.)
        a.at[-5].set(1.)
        a.at[5].set(1.,mode='clip')
        a.at[5].set(1.,mode='drop')
        a.at[5].set(1.,mode='fill')
        a.at[0,1].set(s)
        a.at[:,1].set(9)
        a.at[:,1:].set(v[:2])
        a.at[::-1].set(a)
        a.at[:,::-2].set(1.)
        a.at[...].set(0.)
        a.at[...,0].set(0.)
        a.at[None].set(1.)
        a.at[None,0].set(v)
    """) + rows("""
        a.at[5].set(1.,mode='x')
        a.at[:,1:].set(w)
        s.at[0].set(1.)
        a.at[0,1,2].set(1)
    """, raises=True) + check(
        "jnp.arange(3).at[jnp.int64(2**32 + 1)].set(7)", x64=True) + check(
        "jnp.arange(3).at[2**31].set(7)", "jnp.arange(3).at[2**40 + 1].set(7)"),
    "jax.Array.at[].add": rows("""
        a.at[0].add(v)
        a.at[:,::2].add(1.)
        s.at[...].add(3.)
        w.at[k].add(v)
        w.at[q].add(1.)
        w.at[far].add(1.,mode='clip')
        w.at[far].add(v,mode='fill')
        w.at[k].add(1.,unique_indices=True)
        w.at[one].add(s)
        a.at[one,1:].add(1.)
        a.at[:,k].add(v)
        a.at[k,k].add(v)
        a.at[k[:,None],k].add(1.)
        x3.at[k,:,k].add(1.)
        w.at[i].add(a)
    """) + rows("""
        v.at[v>0].add(v)
        t.at[0].add(True)
        v.at[far].add(1.,mode='wrap')
    """, raises=True),
    "jax.Array.at[].multiply": rows("""
        a.at[0].multiply(2.)
        w.at[q].multiply(2.)
        w.at[one].multiply(3.)
        a.at[:,k].multiply(v)
        v.at[t].multiply(s)
        a.at[a>0].multiply(2.)
        c.at[0].multiply(1j)
        c.at[q[:2]].multiply(2j)
    """) + rows("""
        t.at[0].multiply(True)
    """, raises=True),
    "jax.Array.at[].mul": rows("""
        a.at[0].mul(2.)
    """),
    "jax.Array.at[].divide": rows("""
        a.at[0].divide(2.)
        w.at[q].divide(2.)
        v.at[t].divide(2.)
        k.at[0].divide(2)
        c.at[0].divide(2j)
    """),
    "jax.Array.at[].power": rows("""
        a.at[0].power(2.)
        w.at[q].power(2.)
        v.at[t].power(2.)
        k.at[0].power(2)
    """, tol="accumulate"),
    "jax.Array.at[].min": rows("""
        a.at[0].min(0.)
        w.at[q].min(0.)
        v.at[t].min(0.)
        t.at[0].min(False)
    """),
    "jax.Array.at[].max": rows("""
        a.at[0].max(0.)
        w.at[q].max(0.)
        x3.at[...,k].max(0.)
        t.at[0].max(True)
        c.at[0].max(1.)
    """),
    "jax.Array.at[].subtract": rows("""
        a.at[0].subtract(1.)
        w.at[q].subtract(1.)
    """),
    "jax.Array.at[].apply": rows("""
        a.at[0].apply(lambda x: x*2)
        w.at[q].apply(lambda x: x*2)
        w.at[q].apply(jnp.sin)
        w.at[far].apply(lambda x: x*2)
        w.at[far].apply(lambda x: x*2,mode='clip')
        w.at[one].apply(jnp.cos)
        v.at[t].apply(jnp.sin)
        t.at[0].apply(jnp.logical_not)
        v.at[0].apply(lambda x: 1.)
    """),
    "jax.Array.at[].get": rows("""
        a.at[0].get()
        a.at[5].get()
        a.at[5].get(mode='fill')
        a.at[5].get(mode='clip')
        a.at[5].get(mode='fill',fill_value=7)
        a.at[5].get(mode='drop')
        w.at[far].get()
        w.at[far].get(mode='fill')
        w.at[far].get(mode='fill',fill_value=3)
        w.at[far].get(mode='clip')
        w.at[k].get(indices_are_sorted=False,unique_indices=True)
        w.at[far].get(mode='fill',wrap_negative_indices=False)
        w.at[-1].get(wrap_negative_indices=False)
        w.at[-1].get(mode='fill',wrap_negative_indices=False)
        w.at[one].get()
        v.at[t].get()
    """) + rows("""
        a.at[5].get(mode='nope')
        v.at[far].get(mode='fill',fill_value=s)
        v.at[k].get(mode='wrap')
    """, raises=True) + check("jnp.arange(3).at[2**40 + 1].get(mode='fill')"),
}
