"""Sets."""

from __future__ import annotations

from compat.tables._inputs import rows

TABLE = {
    "jax.numpy.unique": rows("""
        f(d)
        f(r)
        f(i)
        f(a)
        f(n)
        f(n,equal_nan=False)
        f(r,return_index=True)
        f(r,return_inverse=True)
        f(r,return_counts=True)
        f(r,True,True,True)
        f(d,size=2)
        f(d,size=5)
        f(d,size=5,fill_value=-1)
        f(d,True,True,True,size=5)
        f(d,True,True,True,size=2)
        f(d,True,True,True,size=5,fill_value=9)
    """) + rows("""
        f(e,size=3)
        f(e,True,True,True,size=3)
        f([1,1,2])
        f(d,axis=1)
    """, raises=True),
    "jax.numpy.unique_all": rows("""
        f(d)
        f(i)
        f(d,size=5)
        f(n)
        f(d,size=5,fill_value=-1)
    """),
    "jax.numpy.unique_counts": rows("""
        f(d)
        f(d,size=2)
        f(n)
    """),
    "jax.numpy.unique_inverse": rows("""
        f(d)
        f(i,size=8)
        f(i)
        f(n)
    """),
    "jax.numpy.unique_values": rows("""
        f(d)
        f(r,size=3)
        f(n)
        f(i,size=7,fill_value=0)
    """) + rows("""
        f([1,1])
    """, raises=True),
    "jax.numpy.isin": rows("""
        f(a,v)
        f(i,k)
        f(i,k,invert=True)
        f(i,k,assume_unique=True)
        f(s,v)
        f(i,e)
        f(e,v)
        f(n,n)
        f(i,v)
        f(t,t)
        f(i,k,method='sort')
        f(i,k,method='compare_all')
        f(i,k,method='binary_search')
        f(i,k,method='auto')
        f(n,n,method='sort')
        f(n,n,method='binary_search')
    """) + rows("""
        f(d,[1,2])
        f(1,[1,2])
        f([1,2],[1])
        f(i,k,method='q')
    """, raises=True),
    "jax.numpy.union1d": rows("""
        f(d,k)
        f(v,w)
        f(d,k,size=4)
        f(d,k,size=9)
        f(d,k,size=9,fill_value=7)
        f(i,k)
        f(d,v)
        f(e,v)
        f(n,n)
        f(s,1)
        f(t,k)
        f(e,e)
        f(1,2)
        f(d,k,size=one)
    """) + rows("""
        f([1,2],[2,3])
    """, raises=True),
    "jax.numpy.intersect1d": rows("""
        f(d,k)
        f(i,d)
        f(d,q,return_indices=True)
        f(d,q,size=2)
        f(d,q,size=5)
        f(d,q,size=5,fill_value=-9)
        f(d,q,return_indices=True,size=4)
        f(d,q,return_indices=True,size=4,fill_value=7)
        f(p3,q[:3],assume_unique=True)
        f(p3,q[:3],assume_unique=True,return_indices=True)
        f(v,w)
        f(e,v)
        f(n,n)
        f(d,r)
        f(s,1.5)
        f(e,e)
    """) + rows("""
        f([1,2],[2,3])
    """, raises=True),
    "jax.numpy.setdiff1d": rows("""
        f(d,k)
        f(i,d)
        f(d,q,size=2)
        f(i,q,size=5)
        f(i,q,size=5,fill_value=-9)
        f(p3,q[:2],assume_unique=True)
        f(d,q,assume_unique=True)
        f(d,q,assume_unique=True,size=3)
        f(v,w)
        f(e,v)
        f(v,e)
        f(n,n)
        f(d,r)
        f(k,v)
        f(s,1)
        f(d,d,size=3)
    """) + rows("""
        f([1,2],[2,3])
    """, raises=True),
    "jax.numpy.setxor1d": rows("""
        f(d,k)
        f(i,d)
        f(d,q,size=2)
        f(i,q,size=9)
        f(i,q,size=9,fill_value=-9)
        f(p3,q[:3],assume_unique=True)
        f(d,q,assume_unique=True)
        f(v,w)
        f(e,v)
        f(n,n)
        f(d,r)
        f(s,1)
        f(d,d,size=3)
        f(e,e)
        f(p3,q[:3],assume_unique=True,size=4)
        f(k,v)
    """) + rows("""
        f([1,2],[2,3])
    """, raises=True),
}
