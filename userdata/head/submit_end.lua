
function slurm_job_submit(job_desc, part_list, submit_uid)
    local answer = their_submit and their_submit(job_desc, part_list, submit_uid)
    if answer and answer ~= slurm.SUCCESS then
        return answer
    end
    for _, step in ipairs(steps) do
        pcall(step, job_desc, part_list)
    end
    return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
    return their_modify and their_modify(job_desc, job_rec, part_list, modify_uid) or slurm.SUCCESS
end

return slurm.SUCCESS
