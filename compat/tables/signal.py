"""Differences, interpolation, convolution, polynomials, windows, bits."""

from __future__ import annotations

from compat.tables._inputs import rows

TABLE = {
    "jax.numpy.bartlett": rows("""
        f(5)
        f(1)
        f(0)
        f(2)
        f(6)
        f(one)
        f(5.)
        f(np.int32(4))
    """, tol="accumulate") + rows("""
        f(-1)
    """, raises=True),
    "jax.numpy.blackman": rows("""
        f(5)
        f(6)
        f(1)
        f(0)
    """, tol="accumulate"),
    "jax.numpy.hamming": rows("""
        f(5)
        f(8)
        f(1)
        f(0)
        f(one)
    """, tol="accumulate") + rows("""
        f('a')
    """, raises=True),
    "jax.numpy.hanning": rows("""
        f(5)
        f(8)
        f(1)
        f(True)
    """, tol="accumulate"),
    "jax.numpy.kaiser": rows("""
        f(5,14.)
        f(6,0)
        f(1,2.)
        f(5,s)
        f(0,1)
        f(one,1.)
        f(4,jnp.array(2))
        f(5,np.float16(3))
    """, tol="accumulate") + rows("""
        f(5,v)
    """, raises=True),
    "jax.numpy.trim_zeros": rows("""
        f(np.array([0,0,1,2,0]))
        f(o)
        f(jnp.array([0,1,0]))
        f(np.array([0,1,0]),'f')
        f(np.array([0,1,0]),'b')
        f(np.array([0,0]))
        f(z)
        f(np.array([[0,0,0],[0,1,0]]))
        f(np.array([[0,0,0],[0,1,0]]),axis=0)
        f(np.array([[0,0,0],[0,1,0]]),axis=-1)
        f(np.array([[0,0,0],[0,1,0]]),axis=(0,1))
        f(s)
        f(e)
        f(np.array([0,1,0]),'x')
        f(np.array([0,1,0]),'FB')
        f(np.array([0,1,0]),trim='')
    """, tol="accumulate") + rows("""
        f([0,1])
    """, raises=True),
    "jax.numpy.packbits": rows("""
        f(t)
        f(T2)
        f(T2,axis=0)
        f(T2,axis=1)
        f(T2,axis=-1,bitorder='little')
        f(i)
        f(u)
        f(one)
        f(jnp.zeros((0,3),bool),axis=1)
        f(np.ones(17,bool))
        f(e>0)
        f(x3>0,axis=1)
        f(np.ones((3,9),int),axis=1)
        f(one>0)
    """, tol="accumulate") + rows("""
        f(v)
        f(T2,bitorder='x')
        f([1,0])
    """, raises=True),
    "jax.numpy.unpackbits": rows("""
        f(u)
        f(u,count=5)
        f(u,count=-3)
        f(u,count=40)
        f(u.reshape(2,2),axis=0)
        f(u.reshape(2,2),axis=1,count=3)
        f(u,bitorder='little')
        f(u.reshape(2,2))
        f(u[0])
        f(u,count=0)
        f(u.reshape(2,2),axis=-1,bitorder='little',count=12)
        f(u[:0])
    """, tol="accumulate") + rows("""
        f(u,bitorder='x')
        f(k)
        f([1])
    """, raises=True),
    "jax.numpy.polyval": rows("""
        f(v,w)
        f(v,2)
        f(k,w)
        f(k,k)
        f(v,a)
        f(c,v)
        f(e,v)
        f(v,w,unroll=1)
        f(a,v)
        f(a,2.)
        f(v,s)
        f(t,k)
        f(w,c)
    """, tol="accumulate") + rows("""
        f([1,2],3)
        f(s,2.)
    """, raises=True),
    "jax.numpy.polyadd": rows("""
        f(v,w)
        f(w,v)
        f(k,v)
        f(c,v)
        f(k,u)
    """, tol="accumulate") + rows("""
        f([1],[2])
        f(s,v)
    """, raises=True),
    "jax.numpy.polysub": rows("""
        f(v,w)
        f(w,v)
        f(k,k)
    """, tol="accumulate") + rows("""
        f(t,t)
    """, raises=True),
    "jax.numpy.polymul": rows("""
        f(v,w)
        f(k,k)
        f(v,c)
        f(v,w,trim_leading_zeros=True)
        f(o,r)
        f(np.array([0.,0,1]),np.array([0.,2]),trim_leading_zeros=True)
    """, tol="accumulate") + rows("f(e,v)", signed_zeros=False) + rows("""
        f([1,2],[3])
        f(a,v)
    """, raises=True),
    "jax.numpy.polydiv": rows("""
        f(w,v)
        f(v,w)
        f(k,q)
        f(w,c[1:])
        f(w,v[:1])
        f(np.array([1.,5,6]),np.array([1.,2]),trim_leading_zeros=True)
        f(e,v)
    """, tol="accumulate") + rows("""
        f([1,5,6],[1,2])
        f(w,e)
    """, raises=True),
    "jax.numpy.polyder": rows("""
        f(w)
        f(w,2)
        f(w,0)
        f(w,9)
        f(k)
        f(c)
        f(v[:1])
        f(e)
        f(u)
        f(a)
    """, tol="accumulate") + rows("""
        f(w,-1)
        f(w,1.)
        f([1,2,3])
    """, raises=True),
    "jax.numpy.polyint": rows("""
        f(w)
        f(w,2)
        f(w,0)
        f(w,k=3)
        f(w,2,k=v[:2])
        f(k)
        f(c)
        f(w,m=3,k=s)
        f(e)
        f(w,3)
    """, tol="accumulate") + rows("""
        f(w,2,[1,2])
        f(w,2,k=v)
        f(w,-1)
        f([1,2])
    """, raises=True),
    "jax.numpy.convolve": rows("""
        f(v,w)
        f(w,v,'same')
        f(v,w,'same')
        f(w,v,'valid')
        f(v,w,'valid')
        f(k,q)
        f(c,w)
        f(c,c,'same')
        f(h,h)
        f(w,v,precision='highest')
        f(h,h,preferred_element_type='float32')
        f(t,t)
        f(u,u)
        f(i8,i8,preferred_element_type='int32')
        f(w,v[:2],'same')
        f(r,w,'same')
    """, tol="accumulate") + rows("""
        f(w,v,'x')
        f(a,v)
        f(e,v)
        f(s,v)
    """, raises=True),
    "jax.numpy.correlate": rows("""
        f(v,w)
        f(w,v)
        f(w,v,'same')
        f(v,w,'same')
        f(v,w,'full')
        f(w,v,'full')
        f(c,w[:2])
        f(w[:2],c,'full')
        f(c,c,'full')
        f(k,q)
        f(q,r,'same')
        f(r,q,'same')
        f(v[:2],w,'same')
        f(w,v[:2],'same')
        f(c[:2],c,'same')
    """, tol="accumulate") + rows("""
        f(a,v)
        f(e,v)
        f(w,v,'x')
        f([1,2],[3,4])
    """, raises=True),
    "jax.numpy.interp": rows("""
        f(v,o[:1],v[:1])
        f(v,jnp.sort(w),w)
        f(s,jnp.sort(w),w)
        f(1.,jnp.sort(w),w)
        f(a,jnp.sort(w),w)
        f(v,jnp.sort(w),w,left=-1,right=1)
        f(v,jnp.sort(w),w,left='extrapolate')
        f(v*9,jnp.sort(w),w,left='extrapolate',right='extrapolate')
        f(v,jnp.sort(w),w,period=2.)
        f(v,w,w,period=-2)
        f(v,w,w,period=0)
        f(v,o,r[:6])
        f(k,q,q)
        f(v,jnp.sort(w),w*(1+1j))
        f(n,o,o)
        f(v,jnp.sort(w),w,left=s,right=s)
    """, tol="accumulate") + rows("""
        f(v,jnp.sort(w),w,left='x')
        f(v,jnp.sort(w),w,right='x')
        f(v,w,w,period=v)
        f(v,w,v)
    """, raises=True),
    "jax.numpy.gradient": rows("""
        f(w)
        f(a)
        f(a,axis=0)
        f(a,axis=(0,1))
        f(w,2.)
        f(w,jnp.sort(w))
        f(a,1.,2.)
        f(m,w[:4],2.)
        f(k)
        f(s)
        f(c)
        f(h)
        f(w,s)
        f(m,axis=-1)
        f(v[:2])
        f(m,2.,axis=(0,1))
    """, tol="accumulate") + rows("""
        f(w,edge_order=2)
        f(w,edge_order=1)
        f(v[:1])
        f(m,1.,2.,3.)
    """, raises=True),
    "jax.numpy.diff": rows("""
        f(w)
        f(a)
        f(a,axis=0)
        f(w,2)
        f(w,0)
        f(w,9)
        f(w,prepend=0)
        f(w,prepend=v,append=s)
        f(a,prepend=0.)
        f(a,axis=0,prepend=v[None])
        f(a,prepend=a)
        f(t)
        f(k)
        f(u)
        f(c)
        f(e)
    """, tol="accumulate") + rows("""
        f(w,-1)
        f(w,append=[1.,2.])
        f(s)
        f(a,axis=3)
    """, raises=True),
    "jax.numpy.ediff1d": rows("""
        f(w)
        f(a)
        f(w,to_begin=1)
        f(w,v,s)
        f(k,1.5)
        f(k)
        f(s)
        f(e)
        f(u)
        f(w,to_end=a)
        f(k,to_end=v)
    """, tol="accumulate") + rows("""
        f(w,to_end=[1.,2.])
        f(t)
        f([1,3])
    """, raises=True),
    "jax.numpy.trapezoid": rows("""
        f(w)
        f(a)
        f(a,axis=0)
        f(w,jnp.sort(w))
        f(w,dx=2.)
        f(a,v)
        f(a,a)
        f(a,v[:2],axis=0)
        f(k)
        f(c)
        f(w,dx=s)
        f(h)
        f(x3,x3,axis=1)
        f(u)
    """, tol="accumulate") + rows("""
        f(s)
        f(w,v)
        f([1,2])
        f(a,axis=2)
    """, raises=True),
    "jax.numpy.unwrap": rows("""
        f(w)
        f(a)
        f(a,axis=0)
        f(k)
        f(i,period=4)
        f(i,period=5)
        f(w,discont=1.)
        f(w,period=2.)
        f(w*3,discont=4.,period=3.)
        f(h)
        f(t)
        f(u,period=7)
        f(e)
        f(k,period=2.5)
        f(w,period=s)
        f(i,period=6)
    """, tol="accumulate") + rows("""
        f(c)
        f(s)
        f([1,9])
        f(a,axis=3)
    """, raises=True),
}
