"""Products of arrays."""

from __future__ import annotations

from compat.tables._inputs import rows

TABLE = {
    "jax.numpy.dot": rows("""
        f(a,b)
        f(v,v)
        f(a,v)
        f(v,b)
        f(s,a)
        f(x3,b.T)
        f(i,k)
        f(k,u[:3])
        f(t,t)
        f(c,c)
        f(h,h)
        f(h16,v)
        f(1,2)
        f(a,b,precision='highest')
        f(a,b,precision=jax.lax.Precision.HIGHEST)
        f(h,h,preferred_element_type='float32')
    """, tol="accumulate") + rows("""
        f(x3,x3.T)
        f(a,a)
        f([1],2)
        f(a,b,precision='nope')
    """, raises=True),
    "jax.numpy.vdot": rows("""
        f(c,c)
        f(a,a)
        f(v,k)
        f(a,a.T)
        f(2,3)
        f(cm,cm)
        f(s,s)
        f(e,e)
        f(i8,i8,preferred_element_type='int32')
    """, tol="accumulate") + rows("""
        f(a,b)
        f([1],[2])
    """, raises=True),
    "jax.numpy.inner": rows("""
        f(v,v)
        f(a,a)
        f(x3,b)
        f(s,a)
        f(v,2)
        f(c,c)
        f(i8,i8,preferred_element_type='int32')
    """, tol="accumulate") + rows("""
        f(a,b)
        f(x3,b.T)
        f([1],[1])
    """, raises=True),
    "jax.numpy.outer": rows("""
        f(v,w)
        f(a,v)
        f(s,v)
        f(k,v)
        f(t,t)
        f(c,v)
        f(1,2)
        f(e,v)
    """, tol="accumulate") + rows("""
        f(v,w,out=1)
        f([1],v)
    """, raises=True),
    "jax.numpy.matmul": rows("""
        f(a,b)
        f(x3,x3.transpose(0,2,1))
        f(x3,b.T)
        f(v,b)
        f(a,v)
        f(v,v)
        f(v,x3[:,:3,:])
        f(x3[:,:,:3],v)
        f(x3[None],jnp.ones((5,1,4,2)))
        f(i,i.T)
        f(T2,T2.T)
        f(cm,cm.T)
        f(h16,h16.T)
        f(h16,b)
        f(i8,i8,preferred_element_type='int32')
        f(a,b,precision='high')
    """, tol="accumulate") + rows("""
        f(s,a)
        f(a,a)
        f(a,2)
        f(x3,jnp.ones((3,4,2)))
    """, raises=True),
    "jax.numpy.matvec": rows("""
        f(a,v)
        f(x3,w[:4])
        f(cm,c)
        f(x3,jnp.ones((2,4)))
        f(a,k)
    """, tol="accumulate") + rows("""
        f(x3,b)
        f(v,v)
        f(a,w)
        f(a,s)
    """, raises=True),
    "jax.numpy.vecmat": rows("""
        f(v,b)
        f(c,cm.T)
        f(a,x3[:,:,:2])
        f(a,b)
    """, tol="accumulate") + rows("""
        f(w,b)
        f(s,b)
    """, raises=True),
    "jax.numpy.vecdot": rows("""
        f(v,v)
        f(c,c)
        f(a,v)
        f(a,a,axis=0)
        f(x3,x3,axis=1)
        f(i8,i8,preferred_element_type='int32')
        f(k,v)
        f(a,x3[:,0,:3],axis=-1)
        f(x3,b)
        f(a,a,precision='highest')
        f(cm,cm,axis=0)
    """, tol="accumulate") + rows("""
        f(a,w)
        f(a,a,axis=2)
        f(s,s)
        f([1],[1])
    """, raises=True),
    "jax.numpy.tensordot": rows("""
        f(a,b,1)
        f(a,a)
        f(a,v,0)
        f(a,b,([1],[0]))
        f(a,b,(1,0))
        f(x3,x3,((0,1),(0,1)))
        f(x3,x3,[[0,2],[0,2]])
        f(a,b,(-1,0))
        f(s,s,0)
        f(k,v,1)
        f(i8,i8,1,preferred_element_type='int32')
        f(a,a,axes=((0,1),(0,1)))
        f(a,b,-1)
        f(cm,cm,2)
    """, tol="accumulate") + rows("""
        f(a,b,2)
        f(a,b,3)
        f(a,b,((0,1),(0,)))
        f(a,b,'x')
    """, raises=True),
    "jax.numpy.einsum": rows("""
        f('ij,jk->ik',a,b)
        f('ij,jk',a,b)
        f('ij->ji',a)
        f('ij->',a)
        f('ii',m)
        f('ii->i',m)
        f('ij,ij->i',a,a)
        f('i,j->ij',v,w)
        f('...j,j->...',a,v)
        f('...ij,...jk->...ik',x3,jnp.ones((2,4,3)))
        f('ij,jk,kl->il',a,b,b.T)
        f('ij,j,i->',a,v,v[:2])
        f('ijk->kij',x3)
        f('i,i',v,v)
        f('i->',v)
        f(',',s,s)
    """, tol="accumulate") + rows("""
        f('ij,jk->ik',a,a)
        f('ij,jk',a)
        f('ij',v)
        f('ij->ik',a)
    """, raises=True),
    "jax.numpy.einsum_path": rows("""
        f('ij,jk,kl->il',a,b,b.T)
        f('ij,jk,kl->il',a,b,b.T,optimize='greedy')[0]
        f('ij,jk',a,b)[0]
        f('ij,jk,kl',np.ones((2,3)),np.ones((3,4)),np.ones((4,2)),optimize=False)[0]
        f('ij',a)[0]
        f('ij,jk,kl->il',a,b,b.T,optimize=True)[0]
    """, tol="accumulate") + rows("""
        f('ij,jk',a)
    """, raises=True),
    "jax.numpy.kron": rows("""
        f(a,v)
        f(v,a)
        f(a,b)
        f(2,v)
        f(k,v)
        f(c,c)
        f(s,s)
        f(x3[:1],a)
        f(z,a)
    """, tol="accumulate") + rows("""
        f([1],[2])
        f(t,t)
    """, raises=True),
    "jax.numpy.cross": rows("""
        f(v,v[::-1])
        f(a,v)
        f(a.T,v,axisa=0)
        f(a,a[::-1],axis=1)
        f(a.T,a.T[::-1],axis=0)
        f(k,v)
        f(c,v)
        f(a.T,v,axisa=0,axisc=0)
        f(u[:3],u[:3])
    """, tol="accumulate") + rows("""
        f(v[:2],v[:2])
        f(v[:2],v)
        f(a[:,:2],v)
        f(w,v)
        f([1,2,3],[1,2,3])
        f(s,s)
        f(a,b)
    """, raises=True),
}
